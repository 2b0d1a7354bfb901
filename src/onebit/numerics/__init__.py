"""The mathematics that several learners share. It imports no learner."""
