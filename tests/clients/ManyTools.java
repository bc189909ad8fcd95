// Kafka's command-line tools, as many as asked in one JVM. A line has a tool's class and its arguments, parted by unit
// separators (U+001F), and before them the file that is its input, after "<". The answer is what the tool printed, then,
// if it failed, what it said of errors, and a line with its exit code.
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Arrays;

public class ManyTools {
    static class Ended extends RuntimeException {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** The first code that the tool ended with: it may take our exception for an error of its own, and end again. */
    static Integer ended;

    public static void main(String[] arguments) throws Exception {
        catchExits();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\u001f");
            boolean hasInput = words[0].startsWith("<");
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setErr(new PrintStream(errors, true));
            ended = null;
            try (InputStream input = hasInput ? new FileInputStream(words[0].substring(1)) : InputStream.nullInputStream()) {
                System.setIn(input);
                run(hasInput ? Arrays.copyOfRange(words, 1, words.length) : words);
            }
            int code = ended == null ? 0 : ended;
            System.out.println((code == 0 ? "" : errors.toString()) + "\nexit code " + code);
        }
    }

    /** Kafka 4.4 has moved the class through which its tools end. */
    static void catchExits() throws Exception {
        String utils = "org.apache.kafka.common.utils.";
        Class<?> exit;
        try {
            exit = Class.forName(utils + "internals.Exit");
        } catch (ClassNotFoundException before) {
            exit = Class.forName(utils + "Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object caught = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (self, method, given) -> {
            ended = ended == null ? (Integer) given[0] : ended;
            throw new Ended();
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, caught);
    }

    static void run(String[] words) throws Exception {
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
    }
}
