// Command empty does nothing: see TestLibraryGrowsProgramsLittle.
package main

func main() {}
