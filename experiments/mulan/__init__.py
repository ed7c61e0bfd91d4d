"""The paper's section 4: eleven data sets, five learners, four weights."""
