"""The learners, each behind the protocol that `oddslip.learners.backends.base` states."""
