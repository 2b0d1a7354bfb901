"""The mathematics that several learners share. It knows no learner."""
