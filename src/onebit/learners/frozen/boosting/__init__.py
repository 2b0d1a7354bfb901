"""The boosters that came before `onebit.AdaBoostOLMpp`."""
