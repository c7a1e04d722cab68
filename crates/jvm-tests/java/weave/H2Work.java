package weave;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * A database at work: tables, indexes, joins, aggregates, transactions, errors. H2 must be on the
 * class path. What it prints depends on nothing but the queries.
 */
public final class H2Work {
    private H2Work() {}

    public static void main(String[] args) throws Exception {
        int rows = args.length > 0 ? Integer.parseInt(args[0]) : 2000;
        Class.forName("org.h2.Driver");
        try (Connection db = DriverManager.getConnection("jdbc:h2:mem:work;DB_CLOSE_DELAY=-1")) {
            fill(db, rows);
            query(db, "select region, count(*), sum(amount), avg(amount), max(placed) from orders o"
                    + " join customers c on c.id = o.customer group by region order by region");
            query(db, "select c.name, (select count(*) from orders o where o.customer = c.id) n"
                    + " from customers c order by n desc, c.name fetch first 10 rows only");
            query(db, "with recursive t(n, f) as (select 1, cast(1 as bigint) union all"
                    + " select n + 1, f * (n + 1) from t where n < 15) select * from t");
            query(db, "select amount, rank() over (partition by customer order by amount desc) r"
                    + " from orders where customer < 3 order by customer, r, id limit 20");
            query(db, "select upper(name), substring(name, 2, 3), length(name), regexp_replace(name,"
                    + " '[aeiou]', '*') from customers where name like '%a%' order by id limit 10");
            transactions(db);
            errors(db);
            query(db, "select count(*), sum(amount), sum(cast(placed - date '2020-01-01' as int))"
                    + " from orders");
            query(db, "explain select * from orders where customer = 5 and amount > 10");
        }
    }

    private static void fill(Connection db, int rows) throws SQLException {
        try (Statement s = db.createStatement()) {
            s.execute("create table customers(id int primary key, name varchar(40), region char(2))");
            s.execute("create table orders(id int primary key, customer int references customers,"
                    + " amount decimal(12, 2), placed date, note clob)");
            s.execute("create index by_customer on orders(customer, amount)");
        }
        String[] regions = {"no", "so", "ea", "we"};
        try (PreparedStatement p = db.prepareStatement("insert into customers values(?, ?, ?)")) {
            for (int i = 0; i < 50; i++) {
                p.setInt(1, i);
                p.setString(2, "customer-" + Integer.toString(i * 7919 % 1000, 36));
                p.setString(3, regions[i % 4]);
                p.addBatch();
            }
            p.executeBatch();
        }
        try (PreparedStatement p = db.prepareStatement(
                "insert into orders values(?, ?, ?, dateadd(day, ?, date '2020-01-01'), ?)")) {
            for (int i = 0; i < rows; i++) {
                p.setInt(1, i);
                p.setInt(2, (int) (i * 2654435761L >>> 7) % 50 & 31);
                p.setBigDecimal(3, java.math.BigDecimal.valueOf(i * 37L % 10007, 2));
                p.setInt(4, i % 365);
                p.setString(5, "note ".repeat(i % 5));
                p.addBatch();
            }
            p.executeBatch();
        }
    }

    private static void query(Connection db, String sql) throws SQLException {
        System.out.println("> " + sql);
        try (Statement s = db.createStatement(); ResultSet r = s.executeQuery(sql)) {
            ResultSetMetaData about = r.getMetaData();
            while (r.next()) {
                StringBuilder line = new StringBuilder();
                for (int i = 1; i <= about.getColumnCount(); i++) {
                    line.append(i > 1 ? " | " : "").append(r.getString(i));
                }
                System.out.println(line);
            }
        }
    }

    private static void transactions(Connection db) throws SQLException {
        db.setAutoCommit(false);
        try (Statement s = db.createStatement()) {
            System.out.println(s.executeUpdate("update orders set amount = amount + 1 where id < 100"));
            db.rollback();
            System.out.println(s.executeUpdate("delete from orders where mod(id, 7) = 0"));
            db.commit();
            System.out.println(s.executeUpdate("merge into customers key(id) values(7, 'seven', 'no')"));
            db.commit();
        } finally {
            db.setAutoCommit(true);
        }
    }

    private static void errors(Connection db) throws SQLException {
        for (String sql : new String[] {
            "select * from nowhere",
            "insert into customers values(1, 'again', 'no')",
            "insert into orders values(-1, 4711, 1, null, null)",
            "select 1 / 0",
            "select from from"
        }) {
            try (Statement s = db.createStatement()) {
                s.execute(sql);
                System.out.println("no error: " + sql);
            } catch (SQLException e) {
                System.out.println(e.getSQLState() + " " + e.getMessage().lines().findFirst().orElse(""));
            }
        }
    }
}
