"""A model and its repair as one object, for those who call `fit` and `predict`.

Wrappers join what other rooms keep apart: learners' readers of models, `Repair`, and metrics. So
they stand above selection and learners, and nothing but the command line may import them.
"""
