"""Finds per-label class weights in source code, before anything is trained; runs none of it."""
