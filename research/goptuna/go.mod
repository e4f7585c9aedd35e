module github.com/fantasia-hpo/fantasia/research/goptuna

go 1.26.7

require github.com/c-bata/goptuna v0.9.0

require gonum.org/v1/gonum v0.14.0 // indirect
