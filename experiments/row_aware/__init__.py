"""A second stage that sees the whole row: does it earn a place behind a repair?"""
