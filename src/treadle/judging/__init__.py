"""Judgement, pure as the kernel is: has enough been done, and is the run getting anywhere?"""
