"""The parts of an admin client, one for each subject; `moldau.client.administration.admin` puts them together."""
