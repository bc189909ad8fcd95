"""Tests of settings: properties files, values, and what a broker and a topic make of them."""
