import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** One fault in Java with its twin: {@code Program FAULT TRANSPORT faulty|healthy}. The server is a process of its own. */
public class Program {
    static String fault;
    static String transport;
    static boolean isFaulty;

    static boolean isTls() {
        return !transport.equals("clear");
    }

    static SSLContext context() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream file = new FileInputStream(System.getenv("FAULTS_STORE"))) {
            store.load(file, "secret".toCharArray());
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(store, "secret".toCharArray());
        TrustManagerFactory trusted = TrustManagerFactory.getInstance("PKIX");
        trusted.init(store);
        SSLContext context = SSLContext.getInstance(transport.equals("tls12") ? "TLSv1.2" : "TLSv1.3");
        context.init(keys.getKeyManagers(), trusted.getTrustManagers(), null);
        return context;
    }

    static void respond(HttpExchange exchange) throws IOException {
        exchange.getRequestBody().readAllBytes();
        if (fault.equals("java-think") && isFaulty) {
            try {
                Thread.sleep(300);
            } catch (InterruptedException ignored) {
                return;
            }
        }
        exchange.sendResponseHeaders(200, 600);
        exchange.getResponseBody().write(new byte[600]);
        exchange.close();
    }

    static void serve() throws Exception {
        InetSocketAddress any = new InetSocketAddress("127.0.0.1", 0);
        HttpServer server = isTls() ? HttpsServer.create(any, 0) : HttpServer.create(any, 0);
        if (server instanceof HttpsServer) {
            ((HttpsServer) server).setHttpsConfigurator(new HttpsConfigurator(context()));
        }
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", Program::respond);
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    static HttpClient client() throws Exception {
        HttpClient.Builder builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1);
        return isTls() ? builder.sslContext(context()).build() : builder.build();
    }

    static void visit(String port) throws Exception {
        List<HttpClient> clients = new ArrayList<>(List.of(client()));
        String address = isTls() ? "https://localhost:" : "http://127.0.0.1:";
        for (int number = 0; number < 8; number++) {
            if (fault.equals("java-per-request") && isFaulty) {
                clients.add(client());
            }
            HttpRequest request = HttpRequest.newBuilder(URI.create(address + port + "/")).build();
            clients.get(clients.size() - 1).send(request, HttpResponse.BodyHandlers.ofByteArray());
        }
    }

    public static void main(String[] words) throws Exception {
        fault = words[0];
        transport = words[1];
        isFaulty = words[2].equals("faulty");
        if (words.length > 3) {
            serve();
            return;
        }
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java"));
        // This server writes headers and body apart: without the property each body waits for a delayed acknowledgement.
        if (!(fault.equals("java-nagle") && isFaulty)) {
            command.add("-Dsun.net.httpserver.nodelay=true");
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "Program", fault, transport, words[2], "server"));
        Process server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            visit(new BufferedReader(new InputStreamReader(server.getInputStream())).readLine());
        } finally {
            server.destroyForcibly();
        }
        System.exit(0);
    }
}
