package fantasia

// Durable returns how many bytes of the state's file are on the disk.
func (s *Study) Durable() int64 {
	l := s.lead.(*inProcess)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.journal.Durable()
}
