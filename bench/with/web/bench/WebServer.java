package bench;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** Tomcat on a free port of this machine, with one filter and one servlet that answers from a small stock. */
public final class WebServer {
    private static final Logger QUIET = Logger.getLogger("org.apache");

    private final Tomcat tomcat = new Tomcat();

    /** Starts it. */
    public WebServer() throws IOException, LifecycleException {
        QUIET.setLevel(Level.WARNING);
        Path place = Files.createTempDirectory("bench-web");
        place.toFile().deleteOnExit();
        tomcat.setBaseDir(place.toString());
        tomcat.setHostname("localhost");
        tomcat.setPort(0);
        Context context = tomcat.addContext("", place.toString());
        Tomcat.addServlet(context, "shop", new Shop());
        context.addServletMappingDecoded("/orders/*", "shop");
        FilterDef filter = new FilterDef();
        filter.setFilterName("tag");
        filter.setFilter(new Tag());
        context.addFilterDef(filter);
        FilterMap everything = new FilterMap();
        everything.setFilterName("tag");
        everything.addURLPattern("/*");
        context.addFilterMap(everything);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getConnector().setProperty("maxKeepAliveRequests", "-1");
        tomcat.start();
    }

    public int port() {
        return tomcat.getConnector().getLocalPort();
    }

    /** Serves until its input ends. */
    public static void main(String[] args) throws Exception {
        WebServer server = new WebServer();
        System.out.println("port " + server.port());
        while (System.in.read() != -1) {
            // Whatever comes is not for us.
        }
        server.tomcat.stop();
    }

    record Item(int number, String name, int price) {}

    static final class Tag implements Filter {
        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            ((HttpServletResponse) response).setHeader("X-Bench", "yes");
            chain.doFilter(request, response);
        }
    }

    static final class Shop extends HttpServlet {
        private static final long serialVersionUID = 1;

        private final transient List<Item> items = IntStream.range(0, 60)
                .mapToObj(i -> new Item(i, "item " + i * 37 % 60, 100 + i * 31 % 900))
                .toList();

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            int least = Integer.parseInt(request.getParameter("least"));
            response.setContentType("text/plain");
            response.setCharacterEncoding("UTF-8");
            PrintWriter out = response.getWriter();
            out.println(request.getPathInfo() + " for " + request.getHeader("User-Agent"));
            items.stream()
                    .filter(item -> item.price() >= least)
                    .sorted(Comparator.comparingInt(Item::price).thenComparing(Item::name))
                    .limit(20)
                    .forEach(item -> out.println(line(item)));
        }

        private static String line(Item item) {
            return item.number() + ": " + item.name() + ", " + item.price();
        }
    }
}
