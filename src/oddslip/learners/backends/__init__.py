"""The learners, each behind the protocol that `oddslip.learners.backend` states."""
