"""Pictures that only studies draw."""
