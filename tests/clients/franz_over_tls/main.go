// franz-go, a client written in Go, sends records over mutual TLS and reads them: BOOTSTRAP CA PEM. It prints `ok`.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const count = 40

func main() {
	bootstrap, authority, own := os.Args[1], os.Args[2], os.Args[3]
	trusted, err := os.ReadFile(authority)
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	certificate, err := tls.LoadX509KeyPair(own, own)
	must(err)
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}
	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DialTLSConfig(config), kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeTopics("secure"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ConsumerGroup("franz"))
	must(err)
	for number := range count {
		record := &kgo.Record{Topic: "secure", Value: []byte(value(number))}
		must(client.ProduceSync(within, record).FirstErr())
	}
	for read := 0; read < count; {
		fetched := client.PollFetches(within)
		must(within.Err())
		fetched.EachRecord(func(record *kgo.Record) {
			if string(record.Value) != value(read) {
				must(fmt.Errorf("record %d is another one", read))
			}
			read++
		})
	}
	client.Close()
	fmt.Println("ok")
}

func value(number int) string {
	return strings.Repeat(fmt.Sprintf("%03d", number), 30000)
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
