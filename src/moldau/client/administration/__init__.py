"""The parts of an admin client, one for each subject; `moldau.client.admin` puts them together."""
