"""The learners, each as a `Backend`."""
