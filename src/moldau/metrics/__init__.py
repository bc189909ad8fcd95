"""What a broker tells Prometheus about itself (docs/metrics.md): the numbers are read on the loop, in turns, and become
text in the executor. A broker without `metrics.port` imports none of it."""
