package server

// resultPrefix is what the URI of a kept result begins with; the id of its call follows.
const resultPrefix = "codehand://results/"
