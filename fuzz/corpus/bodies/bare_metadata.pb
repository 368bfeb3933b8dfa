

webj
Pod*v1p0