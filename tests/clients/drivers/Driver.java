// Apache Kafka's Java client (kafka-clients) does what it is told; one line of JSON in, one out.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    final String bootstrap, groupProtocol;
    final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    final Map<String, KafkaProducer<String, String>> transactional = new HashMap<>();
    KafkaConsumer<String, String> consumer;
    Admin admin;
    Member member;

    Driver(String bootstrap, String groupProtocol) {
        this.bootstrap = bootstrap;
        this.groupProtocol = groupProtocol;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Driver driver = new Driver(arguments[0], arguments.length > 1 ? arguments[1] : "classic");
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
        driver.transactional.values().forEach(producer -> producer.close(Duration.ofSeconds(3)));
        if (driver.admin != null) driver.admin.close(Duration.ofSeconds(3));
        System.exit(0);
    }

    Object answer(JsonNode ask) throws Exception {
        String topic = ask.path("topic").asText(), group = ask.path("group").asText();
        String producer = ask.path("producer").asText();
        switch (ask.get("do").asText()) {
            case "begin": return begin(producer, ask.get("transactional_id").asText());
            case "write": return send(transactional.get(producer), topic, ask.get("messages"));
            case "send_offsets": return sendOffsets(transactional.get(producer));
            case "end":
                if (ask.get("commits").asBoolean()) transactional.get(producer).commitTransaction();
                else transactional.get(producer).abortTransaction();
                return null;
            case "produce": return produce(topic, ask.get("messages"), ask.get("compression"));
            case "subscribe": return subscribe(topic, group, ask.get("isolation").asText());
            case "take": return take(ask.get("count").asInt(), ask.get("seconds").asLong());
            case "commit": consumer.commitSync(); return null;
            case "unsubscribe": consumer.close(); return null;
            case "join": member = new Member(group, ask.get("topics").asText()); return null;
            case "events": return member.take();
            case "leave": member.leave(); return null;
            case "create_topic":
                NewTopic wanted = new NewTopic(topic, Optional.of(ask.get("partitions").asInt()), Optional.of((short) 1));
                return admin().createTopics(List.of(wanted)).all().get();
            case "delete_topic": return admin().deleteTopics(List.of(topic)).all().get();
            case "configure":
                List<AlterConfigOp> changes = new ArrayList<>();
                ask.get("settings").fields().forEachRemaining(setting -> changes.add(new AlterConfigOp(
                    new ConfigEntry(setting.getKey(), setting.getValue().asText()), AlterConfigOp.OpType.SET)));
                return admin().incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), changes)).all().get();
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
        return send(producer, topic, messages);
    }

    Object send(KafkaProducer<String, String> producer, String topic, JsonNode messages) throws Exception {
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

    Object begin(String producer, String transactionalId) {
        transactional.computeIfAbsent(producer, named -> {
            var made = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "transactional.id", transactionalId),
                new StringSerializer(), new StringSerializer());
            made.initTransactions();
            return made;
        }).beginTransaction();
        return null;
    }

    Object sendOffsets(KafkaProducer<String, String> producer) {
        Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
        for (TopicPartition partition : consumer.assignment())
            places.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        producer.sendOffsetsToTransaction(places, consumer.groupMetadata());
        return null;
    }

    Object subscribe(String topic, String group, String isolation) {
        consumer = consumer(group, Map.of("enable.auto.commit", false, "max.poll.records", 1, "isolation.level", isolation));
        consumer.subscribe(List.of(topic));
        return null;
    }

    KafkaConsumer<String, String> consumer(String group, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group,
            "auto.offset.reset", "earliest", "group.protocol", groupProtocol));
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
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

    // A consumer that polls in a thread of its own and notes what it goes through.
    class Member implements ConsumerRebalanceListener {
        final KafkaConsumer<String, String> consumer;
        final List<Object> events = new ArrayList<>();
        final Thread thread = new Thread(this::poll);
        volatile boolean leaves;

        Member(String group, String topics) {
            boolean classic = groupProtocol.equals("classic");
            Map<String, Object> fast = new HashMap<>(Map.of("metadata.max.age.ms", 1000));
            if (classic) fast.putAll(Map.of("session.timeout.ms", 6000, "heartbeat.interval.ms", 500,
                "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,"
                    + "org.apache.kafka.clients.consumer.RangeAssignor"));
            consumer = consumer(group, fast);
            if (!topics.startsWith("^")) consumer.subscribe(List.of(topics), this);
            else if (classic) consumer.subscribe(Pattern.compile(topics), this);
            else consumer.subscribe(new SubscriptionPattern(topics), this);
            thread.setDaemon(true);
            thread.start();
        }

        synchronized void note(String what, List<String> names) {
            events.add(List.of(System.currentTimeMillis(), what, names));
        }

        synchronized List<Object> take() {
            List<Object> taken = new ArrayList<>(events);
            events.clear();
            return taken;
        }

        void poll() {
            try (consumer) {
                while (!leaves)
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50)))
                        note("took", List.of(record.value()));
            } catch (Exception error) {
                error.printStackTrace();
            }
        }

        void leave() throws InterruptedException {
            leaves = true;
            thread.join(30_000);
        }

        List<String> names(Collection<TopicPartition> partitions) {
            return partitions.stream().map(TopicPartition::toString).collect(Collectors.toList());
        }

        public void onPartitionsAssigned(Collection<TopicPartition> partitions) { note("assigned", names(partitions)); }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) { note("revoked", names(partitions)); }

        public void onPartitionsLost(Collection<TopicPartition> partitions) { note("lost", names(partitions)); }
    }
}
