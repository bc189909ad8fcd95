// Apache Kafka's Java client (kafka-clients) does what it is told; one line of JSON in, one out.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    final String bootstrap;
    final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    KafkaConsumer<String, String> consumer;
    Admin admin;

    Driver(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Driver driver = new Driver(arguments[0]);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                answer.put("ok", driver.answer(JSON.readTree(line)));
            } catch (Exception error) {
                error.printStackTrace();
                answer.put("error", error.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
        driver.producers.values().forEach(producer -> producer.close(Duration.ofSeconds(3)));
        if (driver.admin != null) driver.admin.close(Duration.ofSeconds(3));
        System.exit(0);
    }

    Object answer(JsonNode ask) throws Exception {
        String topic = ask.path("topic").asText(), group = ask.path("group").asText();
        switch (ask.get("do").asText()) {
            case "produce": return produce(topic, ask.get("messages"), ask.get("compression"));
            case "subscribe": return subscribe(topic, group);
            case "take": return take(ask.get("count").asInt(), ask.get("seconds").asLong());
            case "commit": consumer.commitSync(); return null;
            case "unsubscribe": consumer.close(); return null;
            case "create_topic":
                NewTopic wanted = new NewTopic(topic, Optional.of(ask.get("partitions").asInt()), Optional.of((short) 1));
                return admin().createTopics(List.of(wanted)).all().get();
            case "delete_topic": return admin().deleteTopics(List.of(topic)).all().get();
            case "topics": return admin().listTopics().names().get();
            case "partitions": return partitions(topic).size();
            case "groups":
                return admin().listGroups().all().get().stream().map(found -> found.groupId()).collect(Collectors.toList());
            case "members":
                return admin().describeConsumerGroups(List.of(group)).all().get().get(group).members().size();
            case "committed":
                return admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().entrySet().stream()
                    .filter(found -> found.getKey().topic().equals(topic) && found.getValue() != null)
                    .mapToLong(found -> found.getValue().offset()).sum();
            case "end_offsets":
                Map<TopicPartition, OffsetSpec> latest = partitions(topic).stream()
                    .collect(Collectors.toMap(partition -> partition, partition -> OffsetSpec.latest()));
                return admin().listOffsets(latest).all().get().values().stream().mapToLong(found -> found.offset()).sum();
            default: throw new IllegalArgumentException(ask.toString());
        }
    }

    Admin admin() {
        if (admin == null) admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        return admin;
    }

    List<TopicPartition> partitions(String topic) throws Exception {
        int count = admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        return IntStream.range(0, count).mapToObj(number -> new TopicPartition(topic, number)).collect(Collectors.toList());
    }

    Object produce(String topic, JsonNode messages, JsonNode compression) throws Exception {
        String codec = compression == null || compression.isNull() ? "none" : compression.asText();
        KafkaProducer<String, String> producer = producers.computeIfAbsent(codec, named -> new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "compression.type", named, "linger.ms", 5),
            new StringSerializer(), new StringSerializer()));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode message : messages) {
            var record = new ProducerRecord<>(topic, message.get("key").asText(), message.get("value").asText());
            message.get("headers").fields().forEachRemaining(header ->
                record.headers().add(header.getKey(), header.getValue().asText().getBytes(StandardCharsets.UTF_8)));
            sent.add(producer.send(record));
        }
        for (Future<RecordMetadata> one : sent) one.get();
        return sent.size();
    }

    Object subscribe(String topic, String group) {
        consumer = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "group.id", group, "auto.offset.reset", "earliest",
                "enable.auto.commit", false, "max.poll.records", 1),
            new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return null;
    }

    // One record a poll, so that a commit covers what was taken and nothing more.
    List<Object> take(int count, long seconds) {
        List<Object> taken = new ArrayList<>();
        long until = System.currentTimeMillis() + seconds * 1000;
        while (taken.size() < count && System.currentTimeMillis() < until) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                Map<String, String> headers = new LinkedHashMap<>();
                for (Header header : record.headers()) headers.put(header.key(), new String(header.value(), StandardCharsets.UTF_8));
                taken.add(Map.of("key", record.key(), "value", record.value(), "headers", headers,
                    "partition", record.partition(), "offset", record.offset()));
            }
        }
        return taken;
    }
}
