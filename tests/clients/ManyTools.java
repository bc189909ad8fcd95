// Kafka's command-line tools, as many as asked in one JVM: a line has a tool's class and its arguments, parted by tabs;
// the answer is what the tool printed, and then a line with its exit code.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public class ManyTools {
    static class Ended extends RuntimeException {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** The first code that the tool ended with: it may take our exception for an error of its own, and end again. */
    static Integer ended;

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            ended = ended == null ? code : ended;
            throw new Ended();
        });
        System.setErr(System.out);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            ended = null;
            try {
                Class.forName(words[0])
                        .getMethod("main", String[].class)
                        .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (InvocationTargetException failed) {
                if (ended == null) {
                    failed.getCause().printStackTrace();
                    ended = -1;
                }
            }
            System.out.println("exit code " + (ended == null ? 0 : ended));
        }
    }
}
