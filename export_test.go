package fantasia

import "github.com/fantasia-hpo/fantasia/internal/library/inprocess"

// Durable returns how many bytes of the state's file are on the disk.
func (s *Study) Durable() int64 { return s.binding.(*inprocess.Study).Durable() }
