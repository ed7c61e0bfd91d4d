"""Models that others published or that people train with class weights: does a repair help?"""
