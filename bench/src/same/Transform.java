package same;

import java.io.StringReader;
import java.io.StringWriter;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/** An XML document through a style sheet, by the JDK's own processor. */
public final class Transform {
    private static final String SHEET = """
        <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
          <xsl:template match="/orders">
            <bill><xsl:for-each select="order[@total &gt; 50]">
              <xsl:sort select="@total" data-type="number"/>
              <line no="{@no}"><xsl:value-of select="concat(name, ': ', @total * 1.19)"/></line>
            </xsl:for-each></bill>
          </xsl:template>
        </xsl:stylesheet>
        """;

    private Transform() {}

    public static void main(String[] args) throws Exception {
        StringBuilder orders = new StringBuilder("<orders>");
        for (int i = 0; i < 300; i++) {
            orders.append("<order no='").append(i).append("' total='").append(i * 37 % 101)
                .append("'><name>customer ").append(i % 17).append("</name></order>");
        }
        String document = orders.append("</orders>").toString();
        Transformer transformer =
            TransformerFactory.newInstance().newTransformer(new StreamSource(new StringReader(SHEET)));
        StringWriter out = new StringWriter();
        transformer.transform(new StreamSource(new StringReader(document)), new StreamResult(out));
        System.out.println(out.toString().length());
    }
}
