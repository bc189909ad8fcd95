"""The cluster: versions, brokers, coordinators, leaders, replicas and their folders."""
