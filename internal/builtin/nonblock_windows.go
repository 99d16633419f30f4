package builtin

// openNonblock is nothing: named pipes are no files here.
const openNonblock = 0
