"""Many runs of one question: settings, seeds and texts, each run a process of its own."""
