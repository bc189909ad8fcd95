// Kafka's dump tool, run as often as asked in one JVM: one line of JSON in, one out with what it printed. What the tool
// does not know, checkpoints and the like, is read by the classes with which Kafka reads them.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadata;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.tools.DumpLogSegments;
import org.apache.kafka.tools.api.Decoder;

public class Dumps {
    /** Keys and values as hexadecimal digits, so that every byte of them can be compared. */
    public static class Hex implements Decoder<String> {
        @Override
        public String fromBytes(byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
    }

    static String read(File file) throws Exception {
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        StringBuilder found = new StringBuilder();
        switch (file.getName()) {
            case "leader-epoch-checkpoint":
                new LeaderEpochCheckpointFile(file, failures).read().forEach(
                    entry -> found.append(entry.epoch()).append(' ').append(entry.startOffset()).append('\n'));
                break;
            case "partition.metadata":
                PartitionMetadata metadata = new PartitionMetadataFile(file, failures).read();
                found.append(metadata.version()).append(' ').append(metadata.topicId());
                break;
            case ".kafka_cleanshutdown":
                found.append(new CleanShutdownFileHandler(file.getParent()).read());
                break;
            case "meta.properties":
                MetaProperties properties = new MetaProperties.Builder(PropertiesUtils.readPropertiesFile(file.getPath())).build();
                found.append(properties.clusterId().get()).append(' ').append(properties.nodeId().getAsInt());
                break;
            default:
                new OffsetCheckpointFile(file, failures).read().forEach(
                    (partition, offset) -> found.append(partition).append(' ').append(offset).append('\n'));
        }
        return found.toString();
    }

    static void throwInsteadOfLeaving() throws Exception {
        for (String name : List.of("org.apache.kafka.common.utils.Exit", "org.apache.kafka.common.utils.internals.Exit")) {
            try {
                Class<?> exit = Class.forName(name), procedure = Class.forName(name + "$Procedure");
                Object thrower = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (it, method, given) -> {
                    throw new IllegalStateException("it left with " + given[0] + ": " + given[1]);
                });
                exit.getMethod("setExitProcedure", procedure).invoke(null, thrower);
                return;
            } catch (ClassNotFoundException absent) {
                continue;  // Kafka 4.4 has it elsewhere
            }
        }
        throw new IllegalStateException("Kafka has no class Exit");
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        ObjectMapper json = new ObjectMapper();
        throwInsteadOfLeaving();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = json.readTree(line);
            List<String> asked = new ArrayList<>();
            for (JsonNode argument : request.path("dump")) asked.add(argument.asText());
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream out = new PrintStream(printed, false, StandardCharsets.UTF_8);
            System.setOut(out);
            System.setErr(out);
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("error", null);
            try {
                if (request.has("read")) out.print(read(new File(request.get("read").asText())));
                else DumpLogSegments.main(asked.toArray(new String[0]));
            } catch (Throwable error) {
                answer.put("error", error.toString());
            }
            out.flush();
            answer.put("printed", printed.toString(StandardCharsets.UTF_8));
            answers.println(json.writeValueAsString(answer));
        }
    }
}
