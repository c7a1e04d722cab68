package bench;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/** Spark on this machine alone: rows are made, joined, grouped and sorted. */
final class Spark implements Workload {
    private final SparkSession session;
    private final int rows;

    Spark(String[] args) {
        rows = Integer.parseInt(args[0]);
        session = SparkSession.builder()
            .master("local[2]")
            .appName("bench")
            .config("spark.ui.enabled", false)
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", 2)
            .config("spark.sql.warehouse.dir", System.getProperty("java.io.tmpdir"))
            .getOrCreate();
        session.sparkContext().setLogLevel("OFF");
    }

    @Override
    public long iterate() {
        Dataset<Row> orders = session.range(rows)
            .withColumn("customer", functions.expr("id * 7919 % 997"))
            .withColumn("weight", functions.expr("id * 31 % 1009"));
        Dataset<Row> customers = session.range(997)
            .withColumnRenamed("id", "customer")
            .withColumn("port", functions.expr("concat('port ', customer % 13)"));
        Dataset<Row> ports = orders.join(customers, "customer")
            .filter("weight > 100")
            .groupBy("port")
            .agg(functions.sum("weight").as("weight"), functions.count("*").as("orders"))
            .orderBy("port");
        long sum = 0;
        for (Row row : ports.collectAsList()) {
            sum = sum * 31 + row.getLong(1) + row.getLong(2);
        }
        return sum;
    }
}
