// A decision and its feedback, with the defaults of Java's HttpClient, which asks for HTTP/2.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Client {
    static final HttpClient HTTP = HttpClient.newHttpClient();

    static String ask(String url, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
            .header("content-type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        HttpResponse<String> reply = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (reply.statusCode() != 200) throw new Exception(reply.statusCode() + ": " + reply.body());
        return reply.body();
    }

    static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        found.find();
        return found.group(1);
    }

    public static void main(String[] arguments) throws Exception {
        String model = arguments[0];
        String made = ask(model + "/decide", "{\"record\": {\"subject\": \"card charged twice\"}}");
        String id = field(made, "id");
        String result = ask(model + "/feedback", "{\"id\": \"" + id + "\", \"correct\": true}");
        System.out.println(id + " " + field(result, "status"));
    }
}
