// Logs in over TLS, sends a record and reads it: golang CLIENT BOOTSTRAP MECHANISM USER PASSWORD CA
package main

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdg "github.com/xdg-go/scram"
)

const topic = "logins"

func main() {
	client, bootstrap, mechanism, user, password, ca := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]
	pem, err := os.ReadFile(ca)
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	secured := &tls.Config{RootCAs: trusted}
	if client == "franz" {
		err = franz(bootstrap, mechanism, user, password, secured)
	} else {
		err = sarama_(bootstrap, mechanism, user, password, secured)
	}
	if err != nil {
		fmt.Println(err)
	} else {
		fmt.Println("ok")
	}
}

func franz(bootstrap, mechanism, user, password string, secured *tls.Config) error {
	var login sasl.Mechanism
	switch mechanism {
	case "PLAIN":
		login = plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		login = scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	default:
		login = scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DialTLSConfig(secured), kgo.SASL(login),
		kgo.ConsumeTopics(topic), kgo.ConsumerGroup("franz"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer client.Close()
	within, done := context.WithTimeout(context.Background(), 60*time.Second)
	defer done()
	if err := client.Ping(within); err != nil {
		return err
	}
	if err := client.ProduceSync(within, &kgo.Record{Topic: topic, Value: []byte("hello")}).FirstErr(); err != nil {
		return err
	}
	return client.PollFetches(within).Err()
}

type conversation struct {
	hash xdg.HashGeneratorFcn
	*xdg.ClientConversation
}

func (one *conversation) Begin(user, password, authorizationID string) error {
	client, err := one.hash.NewClient(user, password, authorizationID)
	if err == nil {
		one.ClientConversation = client.NewConversation()
	}
	return err
}

func sarama_(bootstrap, mechanism, user, password string, secured *tls.Config) error {
	settings := sarama.NewConfig()
	settings.Net.TLS.Enable, settings.Net.TLS.Config = true, secured
	settings.Net.SASL.Enable, settings.Net.SASL.User, settings.Net.SASL.Password = true, user, password
	settings.Net.SASL.Mechanism = sarama.SASLMechanism(mechanism)
	settings.Producer.Return.Successes = true
	settings.Metadata.Retry.Max = 1
	hash := xdg.HashGeneratorFcn(sha512.New)
	if mechanism == "SCRAM-SHA-256" {
		hash = sha256.New
	}
	settings.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: hash} }
	client, err := sarama.NewClient([]string{bootstrap}, settings)
	if err != nil {
		return err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return err
	}
	if _, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("hello")}); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	select {
	case <-partition.Messages():
		return nil
	case <-time.After(60 * time.Second):
		return fmt.Errorf("no record came")
	}
}
