// Package docs tests the documentation: it runs the commands of README.md and
// docs/ word for word, and holds what they state against the programs.
//
// A fenced block says after its language what is to be done with it:
//
//	run           run it, in the document's own directory, and want success
//	run exit=3    the same with another exit code of its last command
//	serve         start it and leave it running; ready=4222 waits for that port,
//	              ready=8080/readyz for an answer of 200
//	python        what run or serve would do, where there is a Python with scikit-learn
//	cluster=run   what run, or serve, would do, where there is a cluster of Kubernetes
//	file=NAME     write it to a file before the blocks that follow
//	same=NAME     it is the text of that file of the repository
//	table=NAME    nothing here: research/benchmarks/all runs it for the table of that name
//	output        each line is in the output of the block that ran last, in this
//	              order, where … stands for anything
//	output loose  the same, where each number stands for any, and each bar too
//
// Ports are replaced by free ones.
package docs
