import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.Reader;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** Runs Debezium's embedded engine and writes every event as a line of JSON, until it is ended. */
public class RecordEnvelopes {
  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
      settings.load(reader);
    }
    try (Writer out = Files.newBufferedWriter(Path.of(arguments[1]));
        DebeziumEngine<ChangeEvent<String, String>> engine =
            DebeziumEngine.create(Json.class)
                .using(settings)
                .notifying(event -> write(out, event))
                .build()) {
      engine.run();
    }
  }

  private static void write(Writer out, ChangeEvent<String, String> event) {
    try {
      out.write("{\"key\": " + event.key() + ", \"value\": " + event.value() + "}\n");
      out.flush();
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }
}
