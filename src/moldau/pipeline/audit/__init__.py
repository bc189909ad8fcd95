"""The audit: compares what producers had acknowledged with what each tier holds, window by window of event time."""
