"""The synthetic study with known marginals (Table S10)."""
