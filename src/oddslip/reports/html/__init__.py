"""The report page: one HTML file that needs no network."""
