package bench;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** H2 in memory: tables are made and filled, asked, changed in transactions, and dropped. */
final class H2 implements Workload {
    private final int orders;
    private final Connection connection;

    H2(String[] args) throws SQLException {
        orders = Integer.parseInt(args[0]);
        connection = DriverManager.getConnection("jdbc:h2:mem:bench");
        connection.setAutoCommit(false);
    }

    @Override
    public long iterate() throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table item(id int primary key, name varchar(40), price int)");
            statement.execute(
                    "create table orders(id int primary key, item int references item(id),"
                            + " customer varchar(40), quantity int, state varchar(10))");
            statement.execute("create index by_customer on orders(customer, state)");
            long result = fill() + ask() + change() + sums(statement);
            statement.execute("drop table orders");
            statement.execute("drop table item");
            connection.commit();
            return result;
        }
    }

    private long fill() throws SQLException {
        try (PreparedStatement insert =
                connection.prepareStatement("insert into item values(?, ?, ?)")) {
            for (int i = 0; i < 200; i++) {
                insert.setInt(1, i);
                insert.setString(2, "item " + i * 7919 % 200);
                insert.setInt(3, 100 + i * 31 % 900);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        try (PreparedStatement insert =
                connection.prepareStatement("insert into orders values(?, ?, ?, ?, 'new')")) {
            for (int i = 0; i < orders; i++) {
                insert.setInt(1, i);
                insert.setInt(2, i * 13 % 200);
                insert.setString(3, "customer " + i * 37 % 500);
                insert.setInt(4, 1 + i % 9);
                insert.executeUpdate();
            }
        }
        connection.commit();
        return orders;
    }

    private long ask() throws SQLException {
        long result = 0;
        try (PreparedStatement select =
                connection.prepareStatement(
                        "select o.id, i.name, i.price * o.quantity from orders o join item i"
                                + " on i.id = o.item where o.customer = ? and o.state = 'new'"
                                + " order by o.id")) {
            for (int i = 0; i < orders / 10; i++) {
                select.setString(1, "customer " + i % 500);
                try (ResultSet rows = select.executeQuery()) {
                    while (rows.next()) {
                        result += rows.getLong(3) + rows.getString(2).length();
                    }
                }
            }
        }
        return result;
    }

    private long change() throws SQLException {
        long changed = 0;
        try (PreparedStatement update =
                connection.prepareStatement("update orders set state = 'paid' where id = ?")) {
            for (int i = 0; i < orders; i += 3) {
                update.setInt(1, i);
                changed += update.executeUpdate();
                if (i % 60 == 0) {
                    // A change in twenty is taken back with all since the last commit.
                    connection.rollback();
                } else if (i % 10 == 0) {
                    connection.commit();
                }
            }
        }
        connection.commit();
        return changed;
    }

    private static long sums(Statement statement) throws SQLException {
        long result = 0;
        try (ResultSet rows =
                statement.executeQuery(
                        "select i.name, count(*), sum(i.price * o.quantity) as turnover"
                                + " from orders o join item i on i.id = o.item"
                                + " where o.state = 'paid' group by i.name having count(*) > 1"
                                + " order by turnover desc, i.name")) {
            while (rows.next()) {
                result = result * 31 + rows.getLong(3);
            }
        }
        return result;
    }
}
