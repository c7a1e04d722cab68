package bench;

import java.io.StringReader;
import java.io.StringWriter;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/** Saxon: a document of orders is grouped, sorted and summed up by a stylesheet. */
final class Saxon implements Workload {
    private static final String STYLE =
            """
            <xsl:stylesheet version="2.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
              <xsl:template match="orders">
                <report>
                  <xsl:for-each-group select="order" group-by="@customer">
                    <xsl:sort select="sum(current-group()/line/@price)" data-type="number"/>
                    <customer name="{upper-case(current-grouping-key())}"
                              total="{sum(current-group()/line/(@price * @count))}">
                      <xsl:apply-templates select="current-group()/line[@count &gt; 2]"/>
                    </customer>
                  </xsl:for-each-group>
                </report>
              </xsl:template>
              <xsl:template match="line">
                <item id="{replace(@item, '[^0-9]', '')}"><xsl:value-of select="@count"/></item>
              </xsl:template>
            </xsl:stylesheet>
            """;

    private final String document;
    private final Templates templates;

    Saxon(String[] args) throws TransformerException {
        StringBuilder text = new StringBuilder("<orders>");
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            text.append("<order customer=\"c").append(i * 37 % 211).append("\">");
            for (int line = 0; line <= i % 5; line++) {
                text.append("<line item=\"i-").append(i * 13 % 97).append("\" price=\"");
                text.append(100 + i * 7 % 900).append("\" count=\"").append(1 + line).append("\"/>");
            }
            text.append("</order>");
        }
        document = text.append("</orders>").toString();
        TransformerFactory factory =
                TransformerFactory.newInstance("net.sf.saxon.TransformerFactoryImpl", null);
        templates = factory.newTemplates(new StreamSource(new StringReader(STYLE)));
    }

    @Override
    public long iterate() throws TransformerException {
        StringWriter result = new StringWriter();
        templates
                .newTransformer()
                .transform(
                        new StreamSource(new StringReader(document)), new StreamResult(result));
        return result.toString().hashCode();
    }
}
