// Apache Kafka's Java client writes and reads messages exactly: `Exact write|read ADDRESS TOPIC COUNT CODEC`.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Exact {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) write(arguments[1], arguments[2], arguments[4]);
        else read(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
    }

    static void write(String address, String topic, String codec) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "compression.type", codec);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                JsonNode one = JSON.readTree(line);
                var record = new ProducerRecord<>(topic, null, one.get(3).asLong(), bytes(one.get(0)), bytes(one.get(1)));
                for (JsonNode header : one.get(2)) record.headers().add(header.get(0).asText(), bytes(header.get(1)));
                sent.add(producer.send(record));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) one.get();
        }
    }

    static void read(String address, String topic, int count) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(consumer.partitionsFor(topic).stream()
                .map(one -> new TopicPartition(topic, one.partition())).collect(Collectors.toList()));
            for (int found = 0; found < count; ) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofSeconds(1))) {
                    List<List<String>> headers = new ArrayList<>();
                    for (Header header : one.headers()) headers.add(Arrays.asList(header.key(), hex(header.value())));
                    System.out.println(JSON.writeValueAsString(Arrays.asList(
                        hex(one.key()), hex(one.value()), headers, one.timestamp(), one.partition(), one.offset())));
                    found++;
                }
            }
        }
    }

    static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : HexFormat.of().parseHex(text.asText());
    }

    static String hex(byte[] bytes) {
        return bytes == null ? null : HexFormat.of().formatHex(bytes);
    }
}
