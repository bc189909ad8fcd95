"""The metadata of a cluster as an image, and the rules that follow from it. All is pure, except the metadata cache."""
