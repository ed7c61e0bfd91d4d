"""The paper's section 3: matched pairs on product data."""
