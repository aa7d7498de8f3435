package replaytest

import "errors"

func Mkfifo(string) error { return errors.New("there are no FIFOs on Windows") }
