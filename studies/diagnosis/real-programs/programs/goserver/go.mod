module goserver

go 1.26.8
