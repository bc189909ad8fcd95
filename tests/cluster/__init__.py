"""Tests of the cluster's metadata: stores, decisions, and the face that brokers see."""
