// franz-go, a client written in Go, lives through restarts; ../lasting.py says what it does and prints.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions, pause = 6, 40 * time.Millisecond

var (
	lock        sync.Mutex
	acked, took = map[int]bool{}, map[int]bool{}
	sent, fails int
	ends        bool
)

func main() {
	bootstrap, topic, group := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3]
	go func() {
		io.Copy(io.Discard, os.Stdin)
		lock.Lock()
		ends = true
		lock.Unlock()
	}()
	producer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()))
	must(err)
	consumer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(err)
	produced := make(chan bool)
	go func() { produce(producer, topic); close(produced) }()
	for !complete() {
		within, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		fetched := consumer.PollFetches(within)
		cancel()
		fetched.EachError(func(topic string, partition int32, err error) {
			if err != context.DeadlineExceeded {
				fmt.Fprintln(os.Stderr, topic, partition, err)
			}
		})
		fetched.EachRecord(func(record *kgo.Record) {
			number, err := strconv.Atoi(string(record.Value))
			must(err)
			lock.Lock()
			defer lock.Unlock()
			took[number] = true
			fmt.Println("took", number)
		})
	}
	<-produced
	must(consumer.CommitUncommittedOffsets(context.Background()))
	consumer.Close()
}

func produce(producer *kgo.Client, topic string) {
	for {
		lock.Lock()
		number, stop := sent, ends
		if !stop {
			sent++
		}
		lock.Unlock()
		if stop {
			break
		}
		record := &kgo.Record{Topic: topic, Partition: int32(number % partitions), Value: []byte(strconv.Itoa(number))}
		producer.Produce(context.Background(), record, func(_ *kgo.Record, err error) { told(number, err) })
		time.Sleep(pause)
	}
	must(producer.Flush(context.Background()))
	producer.Close()
}

func told(number int, err error) {
	lock.Lock()
	defer lock.Unlock()
	if err != nil {
		fails++
		fmt.Println("failed", number, err)
		return
	}
	acked[number] = true
	fmt.Println("acked", number)
}

// Whether everything ever sent is answered, and everything acknowledged taken.
func complete() bool {
	lock.Lock()
	defer lock.Unlock()
	if !ends || sent != len(acked)+fails {
		return false
	}
	for number := range acked {
		if !took[number] {
			return false
		}
	}
	return true
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
