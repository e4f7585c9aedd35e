package local

import (
	"os"
	"sync"
)

// maxLog bounds a log in bytes. With the one before it, it takes at most twice as much.
const maxLog = 32 << 20

// logFile is a log of bounded size: when it is full, it takes the place of the one before it,
// whose name ends with ".1", and a new one begins. It is safe for concurrent use.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openLog opens a log, which goes on where an earlier process has left it.
func openLog(path string, limit int64) (*logFile, error) {
	l := &logFile{path: path, max: limit}
	return l, l.open()
}

func (l *logFile) open() (err error) {
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	info, err := l.file.Stat()
	if err == nil {
		l.size = info.Size()
	}
	return err
}

// Write implements io.Writer. A line is never split. If no new file can be begun, the old one
// goes on.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.max && os.Rename(l.path, l.path+".1") == nil {
		full := l.file
		if err := l.open(); err != nil {
			l.file = full
		} else if err := full.Close(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	return n, err
}

// Close implements io.Closer.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
