// The requests of server.py, by com.sun.net.httpserver. usage: java Server.java PORT LOG
import com.sun.net.httpserver.*;
import java.io.*;
import java.net.InetSocketAddress;
import java.nio.file.*;
import java.time.*;
import java.time.temporal.ChronoUnit;
import java.util.*;
import java.util.concurrent.Executors;

public class Server {
    static Path log;

    static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    static void pause(String name, int ms) throws IOException {
        long start = now();
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
        Files.writeString(log, name + " " + start + " " + now() + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    public static void main(String[] args) throws Exception {
        log = Path.of(args[1]);
        HttpServer server = HttpServer.create(new InetSocketAddress("0.0.0.0", Integer.parseInt(args[0])), 128);
        server.createContext("/r", exchange -> {
            Map<String, Integer> q = new HashMap<>();
            String query = exchange.getRequestURI().getQuery();
            if (query != null)
                for (String pair : query.split("&"))
                    q.put(pair.split("=")[0], Integer.parseInt(pair.split("=")[1]));
            exchange.getRequestBody().readAllBytes();
            if (q.containsKey("think"))
                pause("think", q.get("think"));
            int size = q.getOrDefault("size", 500), at = q.getOrDefault("at", size / 2);
            byte[] body = new byte[size];
            exchange.sendResponseHeaders(200, size);
            OutputStream out = exchange.getResponseBody();
            if (q.containsKey("late")) {
                out.write(body, 0, at);
                out.flush();
                pause("late", q.get("late"));
                out.write(body, at, size - at);
            } else {
                out.write(body);
            }
            out.close();
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
