"""The supplement of section 3: what it measures beside the ladder, and what it prints."""
